// Escapes texts for plotly, which reads a little markup in texts.

/**
 * Plotly reads a little markup in texts; a token's text must not be read so.
 * @param {string} text
 */
export const escapeMarkup = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** @param {string} text */
export const unescapeMarkup = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

/**
 * @param {string} text
 * @param {number} [longest] characters; 0 or nothing cuts nothing
 */
export const cutText = (text, longest) => {
  if (!longest) return text;
  const letters = Array.from(text);
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : text;
};
