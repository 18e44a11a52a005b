// The only reader of streams: every line is parsed once, and then passed on as an object.

/** Reads a text that comes in any pieces. */
export class LineReader {
  constructor() {
    this.rest = ""; // what has no line end yet
  }

  /**
   * Return the lines that are complete with this piece; lines that were read before are returned as they are.
   * @template {object} L
   * @param {string | L[]} piece
   * @returns {L[]}
   */
  read(piece) {
    if (typeof piece !== "string") return piece;
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    return lines.filter((line) => line.trim()).map((line) => JSON.parse(line));
  }
}
