"""A picture of a state machine, from its definition alone.

    graph    the definition as nodes and edges, with a few words on each
    layers   which node is in which row, and in which order
    places   where everything stands, in pixels
    svg      the drawing

The same definition always gives the same bytes: nothing hangs on fonts or on the machine. Widths
of texts are estimated from a table of Helvetica's.
"""
