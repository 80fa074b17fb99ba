package natstest

import "syscall"

func init() {
	const shm, room = "/dev/shm", 1 << 30 // bytes; the /dev/shm of a container has 64 MB by default, which is too small
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room && syscall.Access(shm, 2) == nil {
		memoryDir = shm
	}
}
