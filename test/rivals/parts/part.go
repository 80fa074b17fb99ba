package main

// parts are the parts of the work. A sample counts for the first part that matches. A part matches if a function of the
// stack contains one of the words. The parts of the runtime and of the kernel are first, because the functions that
// call them are in the same stack.
var parts = []struct {
	name  string
	words []string
}{
	{"memory", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge",
		"runtime.gcStart", "runtime.gcMarkTermination", "runtime.mallocgc", "runtime.newobject", "runtime.growslice",
		"runtime.makeslice", "runtime.makemap"}},
	{"sockets", []string{"internal/poll.(*FD).Write", "internal/poll.(*FD).writev", "net.(*netFD).writeBuffers",
		"ksys_write", "do_writev", "internal/poll.(*FD).Read", "ksys_read"}},
	{"files", []string{"os.(*File)", "syscall.pwrite", "unlink", "rename"}},
	{"wake-ups", []string{"runtime.futex", "do_futex", "runtime.netpoll", "epoll_wait", "runtime.epollwait",
		"epoll_pwait", "runtime.sysmon", "runtime.usleep", "nanosleep", "runtime.(*timers)", "runtime.(*timer)",
		"time.(*Timer)", "runtime.schedule", "runtime.mcall", "runtime.findRunnable", "runtime.mstart",
		"runtime.park_m", "runtime.wakep", "runtime.goready", "runtime.ready", "schedule_idle", "ret_from_fork"}},

	{"ask the leader, commit", []string{"link.(*JetStream).Sample", "engine.(*committer)", "broker/jsapi.Client"}},
	{"seal", []string{"message.(*Keys)", "message.stamp"}},
	{"headers, client library", []string{"HopHeader", "TargetHeader", "SplitHeader", "nats%2ego.(*Msg).headerBytes",
		"nats%2ego.DecodeHeaders"}},
	{"answers", []string{"broker/acks.(*Inbox).receive", "broker/acks.(*Inbox).tell", "broker/jsapi."}},
	{"read, parse", []string{"broker/message.", "broker/lane."}},
	{"decide, send, keep records", []string{"broker/acks.", "broker/deliver.", "delaybroker/wheel", "broker/engine."}},
	{"headers, client library", []string{"nats%2ego."}},

	{"files", []string{"(*fileStore).", "(*msgBlock).", "(*stream).purge"}},
	{"push to the reader", []string{"(*consumer)."}},
	{"schedules", []string{"MsgScheduling"}},
	{"JetStream API", []string{"(*Server).js", "(*jetStream).apiDispatch", "processJSAPIRoutedRequests"}},
	{"take in and acknowledge", []string{"(*stream).", "(*client).", "server.(*Server)"}},
}

// partOf returns the name of the first part that matches a stack.
func partOf(stack []string) string {
	for _, p := range parts {
		for _, word := range p.words {
			if contains(stack, word) {
				return p.name
			}
		}
	}
	return "other"
}
