// Texts that plotly draws: a token's text must not be read as the little markup that plotly reads in texts.


// Plotly reads a little markup in texts; a token's text must not be read so.
export const escapeMarkup = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

export const unescapeMarkup = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

export const cutText = (text, longest) => {
  const letters = longest ? Array.from(text) : text;
  return longest && letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : text;
};
