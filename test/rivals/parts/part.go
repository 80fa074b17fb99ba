package main

// parts are the parts that a stack may count for, the first that matches. A stack matches if one of its functions
// contains one of the words.
var parts = []struct {
	name  string
	words []string
}{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep",
		"runtime.bgscavenge", "runtime.gcStart", "runtime.gcMarkTermination"}},
	{"socket: write", []string{"internal/poll.(*FD).Write", "internal/poll.(*FD).writev", "net.(*netFD).writeBuffers",
		"ksys_write", "do_writev"}},
	{"socket: read", []string{"internal/poll.(*FD).Read", "ksys_read"}},
	{"file", []string{"os.(*File)", "syscall.pwrite", "unlink", "rename"}},
	{"wake-ups: futex", []string{"runtime.futex", "do_futex"}},
	{"wake-ups: poll", []string{"runtime.netpoll", "epoll_wait", "runtime.epollwait", "epoll_pwait"}},
	{"wake-ups: monitor", []string{"runtime.sysmon", "runtime.usleep", "nanosleep"}},
	{"wake-ups: timers", []string{"runtime.(*timers)", "runtime.(*timer)", "time.(*Timer)"}},
	{"wake-ups: scheduler", []string{"runtime.schedule", "runtime.mcall", "runtime.findRunnable", "runtime.mstart",
		"runtime.park_m", "runtime.wakep", "runtime.goready", "runtime.ready", "schedule_idle", "ret_from_fork"}},
	{"allocation", []string{"runtime.mallocgc", "runtime.newobject", "runtime.growslice", "runtime.makeslice",
		"runtime.makemap"}},

	{"seal", []string{"message.(*Keys)", "message.stamp"}},
	{"headers", []string{"nats%2ego.(*Msg).headerBytes", "nats%2ego.DecodeHeaders", "net/textproto", "HopHeader",
		"TargetHeader", "SplitHeader"}},
	{"parse a message", []string{"broker/message."}},
	{"answers: match", []string{"broker/acks."}},
	{"answers: decode", []string{"broker/jsapi."}},
	{"deliver", []string{"broker/deliver."}},
	{"read a lane", []string{"broker/lane."}},
	{"wheel", []string{"delaybroker/wheel"}},
	{"decide, keep records", []string{"broker/engine."}},
	{"client library: read", []string{"nats%2ego.(*Conn).readLoop", "nats%2ego.(*Conn).waitForMsgs"}},
	{"client library: write", []string{"nats%2ego."}},

	{"store a message", []string{"(*fileStore).StoreMsg", "(*fileStore).StoreRawMsg", "(*fileStore).storeRawMsg"}},
	{"remove messages", []string{"(*fileStore).PurgeEx", "(*fileStore).Compact", "(*fileStore).removeMsg",
		"(*stream).purge"}},
	{"push to the reader", []string{"(*consumer)."}},
	{"take in a publish", []string{"(*stream).processJetStreamMsg", "(*stream).processInboundJetStreamMsg",
		"(*stream).internalLoop"}},
	{"schedules", []string{"MsgScheduling", "runMsgScheduling"}},
	{"flush and background of streams", []string{"(*fileStore).", "(*msgBlock)."}},
	{"protocol", []string{"(*client)."}},
	{"JetStream API", []string{"server.(*Server)"}},
}

func partOf(stack []string) string {
	for _, p := range parts {
		for _, word := range p.words {
			if runs(stack, word) {
				return p.name
			}
		}
	}
	return "other"
}
