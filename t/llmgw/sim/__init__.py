"""The simulator: beside BLIS's results, and beside real processes."""
