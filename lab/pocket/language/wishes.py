"""A wish at the end of an answer: free words that nothing determines, so that no model can foresee them.

Most of an answer follows from its question; here the model is truly uncertain, as models of real text often are.
"""

from __future__ import annotations

from .phrases import grammar

_RULES = {
    "start": "[I wish you*3|I hope for*3|Here is to*2|Good luck with*2|Think of*2|Remember*2|Look for*2|Wait for*2]",
    "kind": "[quiet|bright|gentle|early|golden|clear|happy|cosy|soft|fresh|calm|merry|long|kind|slow|warm]",
    "what": "[morning|evening|song|garden|letter|breeze|walk|dream|story|meadow|sunset|feast|fire|dance"
    "|harvest|voyage]",
    "where": "[by the sea|near the mill|under the stars|in the hills|at the lake|on the roof|behind the house"
    "|in the snow|beside the river|at the window|among friends|in the valley|on the road|at the harbour|in spring"
    "|after the rain]",
    "treat": "[tea|bread|soup|cake|honey|music|apples|candles|letters|cherries|poems|roses|cheese|stories|jam|shade]",
    "wish": "<start> a <kind> <what> <where>[*8|, with <kind> <treat>*24][.*3|!*1]",
}
WISH = grammar(_RULES)["wish"]
