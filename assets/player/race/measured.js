// The measured costs of passes on a device: written by benchmarks/device_costs.py from assets/costs/.
export const MEASURED = {
  device: "NVIDIA H200",
  date: "2026-11-27",
  shape: "7B",
  parameters: 7110393856,
  context: 1024,
  rows: [1, 2, 4, 8, 16, 32, 64, 96, 128],
  milliseconds: [4.8515, 4.7525, 4.8366, 4.947, 4.937, 5.4872, 5.9408, 6.8183, 7.2968],
};
