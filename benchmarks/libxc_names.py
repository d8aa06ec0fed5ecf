"""What libxc calls the functionals of `examples/xc/`."""

LIBXC = {
    "slater": "LDA_X",
    "vwn5": "LDA_C_VWN",
    "pw92": "LDA_C_PW",
    "pbe_x": "GGA_X_PBE",
    "pbe_c": "GGA_C_PBE",
    "b88": "GGA_X_B88",
    "lyp": "GGA_C_LYP",
    "tpss_x": "MGGA_X_TPSS",
    "tpss_c": "MGGA_C_TPSS",
    "r2scan_x": "MGGA_X_R2SCAN",
    "r2scan_c": "MGGA_C_R2SCAN",
}

THRESHOLDS = {
    "slater": 2e-15,
    "vwn5": 1e-15,
    "pw92": 1e-15,
    "pbe_x": 2e-15,
    "pbe_c": 1e-12,
    "b88": 2e-15,
    "lyp": 1e-14,
    "tpss_x": 2e-15,
    "tpss_c": 1e-15,
    "r2scan_x": 2e-11,
    "r2scan_c": 1e-15,
}
"""The densities below which libxc computes nothing; of an exchange functional, twice that of a spin."""
