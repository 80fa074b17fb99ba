package layout

import "errors"

var (
	// ErrMissingStreams is returned when streams do not exist and the provisioner may not create them. Create them, or
	// allow it to.
	ErrMissingStreams = errors.New("streams are missing")
	// ErrForbidden is returned when the user may not create or change a stream; the error names the subject. Grant it, or
	// have somebody else do it and provision without Create.
	ErrForbidden = errors.New("NATS refuses the user a right")
	// ErrAway is returned when streams of ours have no leader that could describe them. Try again, or go on without.
	ErrAway = errors.New("streams have no leader")
	// ErrServerTooOld is returned when the server's streams keep no metadata. Upgrade nats-server.
	ErrServerTooOld = errors.New("nats-server is too old")
	// ErrForeignStream is returned when a stream has the name of one of ours but not its marks. Rename it, or choose
	// another prefix.
	ErrForeignStream = errors.New("a stream has our name but not our metadata")
)
