package streams

import "errors"

var (
	// ErrMissingStreams is returned when streams do not exist and the provisioner may not create them. Create the
	// streams, or set MayCreate.
	ErrMissingStreams = errors.New("streams are missing")
	// ErrForbidden is returned when the user may not create or change a stream. The error names the subject. Grant the
	// permission, or have another user provision the streams and run without MayCreate.
	ErrForbidden = errors.New("the NATS user lacks a permission")
	// ErrNoLeader is returned when some of the broker's streams have no leader, so that no server can describe them. Try
	// again, or provision without NeedLeaders.
	ErrNoLeader = errors.New("streams have no leader")
	// ErrServerTooOld is returned when the server does not support metadata of streams. Upgrade nats-server.
	ErrServerTooOld = errors.New("nats-server is too old")
	// ErrForeignStream is returned when a stream has the name of one of the broker's streams but not the broker's marks.
	// Rename the stream, or choose another prefix.
	ErrForeignStream = errors.New("a stream that is not the broker's has the name of a stream of the broker")
)
