"""Kernels of our own for CUDA devices, in Triton, one a file."""
