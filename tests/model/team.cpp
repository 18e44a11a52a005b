// Calls of teams of changing sizes, whose phases note what was done: prints "ok", or where a piece was done twice, not at
// all, in the phase of another, or by a member too many.
#include "team.h"

#include <cstdio>
#include <cstdlib>

int main(int, char** given) {
  Team team;
  srand(1);
  for (int call = 0, calls = atoi(given[1]); call < calls; call++) {
    const int size = 1 + rand() % 3, phases = rand() % 12;
    std::vector<std::vector<int>> done(phases);  // of every phase, how often each piece was done: plain numbers
    std::atomic<bool> in_order{true};
    for (auto& phase : done) phase.assign(rand() % 9, 0);
    team.run(size, [&](int member) {
      if (member >= size) in_order = false;
      for (int phase = 0; phase < phases; phase++)
        team.share((int)done[phase].size(), [&](int piece) {
          done[phase][piece]++;
          for (int other = 0; other < phases; other++)
            for (int times : done[other])
              if (other != phase && times != (other < phase)) in_order = false;
        });
    });
    for (const auto& phase : done)
      for (int times : phase)
        if (times != 1 || !in_order) {
          printf("call %d, %d members: a piece was done %d times%s\n", call, size, times, in_order ? "" : ", out of turn");
          fflush(stdout);
          _Exit(1);
        }
  }
  printf("ok\n");
  fflush(stdout);
  _Exit(0);  // the members wait for work that will not come
}
