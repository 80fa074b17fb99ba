// Package demo runs a server and a broker, publishes messages with each kind of delay, and shows their arrival on a
// board. At the end, it removes the server's data.
package demo
