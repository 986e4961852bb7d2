"""Model and folding to design: the plan, its cycles, its memories, its manifest."""
