"""Problems for a minimiser: an objective of arrays as a function of one real vector, flat or on a manifold."""
