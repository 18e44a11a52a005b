/**
 * Return an axis in the layout by its id: "y3" is layout.yaxis3.
 * @param {string} id
 */
export const axisName = (id) => `${id[0]}axis${id.slice(1)}`;
