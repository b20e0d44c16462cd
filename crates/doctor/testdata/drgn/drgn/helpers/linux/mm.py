def totalram_pages(prog):
    return 1 << 20
