// Package demo shows delays at work: a server and a broker of its own, messages that are published in each of the ways
// to say when, and a board that shows when they arrive. At the end, all of it is removed.
package demo
