// Package process runs the broker's process. A [Process] starts the parts that a broker needs. At the first failure or
// signal, it stops them in reverse order. The comment of [Process.Run] has a diagram.
package process
