"""kernelbook: compile, verify, count and measure CUDA kernels; bind articles to what was seen.

A room (module or package) imports only rooms before it:

    errors → quantities → experiment → inputs → metrics → devices → sources → compiler → codec
           → sampling → records → staleness → resources → catalog → verify → ptx/ → pictures/
           → compare → gpu/ → report/ → runner/ → site/

The one exception: runner/ asks site.stubs, which needs no Markdown library, for missing pages.
"""
