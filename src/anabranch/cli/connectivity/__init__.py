"""`anabranch connectivity`: the command, its lines of output and its plot."""
