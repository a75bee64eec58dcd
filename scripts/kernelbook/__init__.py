"""kernelbook: compile, verify, count and measure CUDA kernels; bind articles to what was seen.

A room (module) imports only rooms above it:

    errors → experiment → devices → compiler → records → catalog → verify → ptx/ → sampling
           → gpu → runner → report/ → site/
"""
