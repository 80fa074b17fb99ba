// Package process runs the broker's process. It starts the parts that a broker needs. Steps that may be refused come
// first, before anything is changed. It ends at the first failure or signal, and stops the parts in the reverse order.
// See [Process.Run] for the picture.
package process
