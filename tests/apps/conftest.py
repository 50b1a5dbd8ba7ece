from digits_run import configure, digits, few_digits, small  # noqa: F401
