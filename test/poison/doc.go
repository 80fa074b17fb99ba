// Package poison is what strangers write to hurt a broker, its targets or their consumers. The unit tests feed it to the
// parsers, and the tests of promises to a broker on a real server: one list, so that neither forgets what the other knows.
package poison
