//go:build race

package natstest

func useProcessors(int) {}
