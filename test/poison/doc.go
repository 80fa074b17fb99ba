// Package poison is what strangers write to hurt a broker, its targets or their consumers. The unit tests feed it to
// the parsers, and the tests of promises feed it to a broker on a real server. One list serves both, so that neither
// misses what the other knows.
package poison
