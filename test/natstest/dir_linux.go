package natstest

import "syscall"

func init() {
	const shm, room = "/dev/shm", 1 << 30 // a container has 64 MB there by default
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room && syscall.Access(shm, 2) == nil {
		memory = shm
	}
}
