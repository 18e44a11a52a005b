// What passes cost on a device, as measured: written by benchmarks/device_costs.py from assets/costs/.
export const MEASURED = {
  device: "NVIDIA H200",
  date: "2026-11-26",
  shape: "7B",
  parameters: 7110393856,
  context: 1024,
  rows: [1, 2, 4, 8, 16, 32, 64, 96, 128],
  milliseconds: [4.7332, 4.6611, 4.6724, 4.8527, 4.9501, 5.1459, 5.5118, 5.6836, 6.0691],
};
