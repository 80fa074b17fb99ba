// Package process is the life of the broker's process: it starts what a broker needs, in an order in which nothing is
// touched that may still be refused, ends with the first failure or signal, and stops in the reverse order. See
// [Process.Run] for the picture.
package process
