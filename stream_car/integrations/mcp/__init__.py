"""The Model Context Protocol: what is in force, for agents, over standard input and output or over HTTP."""
