package main

import (
	"net"
	"os"
	"path/filepath"

	"delaybroker/broker"
)

// place is where this broker runs, so that it is known again after a crash and takes over from itself at once. Two
// cannot embed a server in one directory, which is locked, nor listen on one address of one host. Containers that share
// a host name and not its network can; then the younger goes on without a place. In a pod the host is called like the
// pod.
//
// With HTTP off, or on any port that is free, there is nothing to know it by.
func (c config) place() broker.Place {
	host, err := os.Hostname()
	if err != nil {
		return broker.Place{}
	}
	if c.embed != nil {
		dir, err := filepath.Abs(c.embed.dir)
		if err != nil {
			return broker.Place{}
		}
		return broker.Place{Name: host + " " + dir, Locked: true}
	}
	if _, port, err := net.SplitHostPort(c.httpAddr); err != nil || port == "0" {
		return broker.Place{}
	}
	return broker.Place{Name: host + " " + c.httpAddr}
}
