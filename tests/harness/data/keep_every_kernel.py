def filter_config(c):
    return True
