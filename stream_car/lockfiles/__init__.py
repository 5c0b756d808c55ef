"""The packages that lockfiles and bills of material list. Pure."""
