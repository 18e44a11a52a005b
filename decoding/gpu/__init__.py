"""Kernels of our own for CUDA devices, in Triton: one a file, each beside what it computes in torch's operations."""
