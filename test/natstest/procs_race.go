//go:build race

package natstest

func addBubbles(int) {}
