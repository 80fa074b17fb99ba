// Package process runs the broker's process. A [Process] starts the parts that a broker needs. It begins with the steps
// that can fail before they change anything. It ends at the first failure or signal, and stops the parts in the reverse
// order. [Process.Run] has a diagram.
package process
