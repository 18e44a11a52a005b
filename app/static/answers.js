// Answers of the server's functions.

/**
 * An answer, or null after its sentence has been shown; what is on the screen stays.
 * @template {{ fault?: string }} T
 * @param {() => Promise<T | null>} call
 * @param {(sentence: string) => void} say
 */
export const answerOf = async (call, say) => {
  try {
    const answer = await call();
    if (answer && !answer.fault) return answer;
    say(answer?.fault ?? "The server gave no answer: try again.");
  } catch {
    say("The server could not be reached: try again.");
  }
  return null;
};
