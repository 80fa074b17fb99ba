package deadletter

import "errors"

var (
	// ErrNoStream is returned if there is no stream of dead letters, or no lane for resent messages. Run delaybroker
	// provision.
	ErrNoStream = errors.New("the stream does not exist")
	// ErrAbsent is returned for a letter that was already removed.
	ErrAbsent = errors.New("the letter is gone")

	// ErrStays matches every error about a letter that cannot be resent with the given change. The letter is unchanged.
	ErrStays = errors.New("the letter stays")
	// ErrUnreadable is returned if no broker of this format can have written the headers of a letter.
	ErrUnreadable = stays("no broker of this version can have written its headers")
	// ErrUnproven is returned if no seal proves that a broker has written the letter, or the message in it. A client
	// may have forged it. Change.Unsealed delivers it without this proof.
	ErrUnproven = stays("no seal proves that a broker wrote it")
	// ErrMarker is returned for the marker of a named timer without a valid seal. It is never resent, since it is not a
	// message.
	ErrMarker = stays("it is the marker of a named timer, not a message")
	// ErrNoTarget is returned if a letter has no target. Set Change.Target.
	ErrNoTarget = stays("it has no target")
	// ErrForbidden is returned if the current policy does not allow the target. Set Change.Target to another one.
	ErrForbidden = stays("its target is not allowed")
	// ErrNoTime is returned if the request was invalid, so that its due time is unknown. Change.AtOnce delivers the
	// message immediately, and Change.Edit may set a Delay-Until.
	ErrNoTime = stays("the request was invalid, so its due time is unknown")
	// ErrPastExpiry is returned if Delay-Expires has passed. Change.DropExpiry removes the header.
	ErrPastExpiry = stays("its Delay-Expires has passed")
	// ErrEdit is returned if Change.Edit is not possible: a header is reserved, there are too many headers, or a value
	// contradicts another header of the letter.
	ErrEdit = stays("this change of its headers is not possible")
	// ErrTooLarge is returned if the lanes do not accept a message of this size.
	ErrTooLarge = stays("it is larger than the lanes allow")
)

// A stay is an error that ErrStays matches.
type stay struct{ why string }

func stays(why string) error { return &stay{why} }

func (s *stay) Error() string        { return s.why }
func (s *stay) Is(target error) bool { return target == ErrStays }
