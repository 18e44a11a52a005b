// An axis in the layout by its id: "y3" is layout.yaxis3.
export const axisName = (id) => `${id[0]}axis${id.slice(1)}`;
