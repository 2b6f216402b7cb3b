/* A library that has none of the functions that its name promises. */
int nothing;
