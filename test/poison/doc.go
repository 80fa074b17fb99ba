// Package poison has lists of hostile input: headers and targets that could harm a broker, its targets or their
// consumers. Unit tests pass these lists to the parsers, and package promises passes them to a broker on a real server.
package poison
