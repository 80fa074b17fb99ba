package deadletter

import "errors"

var (
	// ErrNoStream is returned when there is no stream of dead letters, or no lane for resent messages. Provision them.
	ErrNoStream = errors.New("the stream is not there")
	// ErrAbsent is returned for a letter that is gone already.
	ErrAbsent = errors.New("the letter is gone")

	// ErrStays is wrapped by every error that is returned for a letter that cannot be resent as asked. The letter stays
	// unchanged.
	ErrStays = errors.New("the letter stays")
	// ErrUnreadable is returned when no broker of this format can have written the headers of a letter.
	ErrUnreadable = stays("its headers are not what a broker of this version writes")
	// ErrUnproven is returned when no seal proves that a broker has written the letter, or the message in it: a client may
	// have forged it. With Change.Unsealed it is delivered all the same.
	ErrUnproven = stays("nobody has proven that a broker wrote it")
	// ErrMarker is returned for the marker of a named timer, which nobody could prove. It is no message, whatever Change
	// says.
	ErrMarker = stays("it is the marker of a named timer, and no message")
	// ErrNoTarget is returned when a letter has no target. Change.Target gives it one.
	ErrNoTarget = stays("it has no target")
	// ErrForbidden is returned when the target does not pass the present policy. Change.Target gives the letter another.
	ErrForbidden = stays("its target may not be delivered to")
	// ErrNoTime is returned when a request was never understood, so that its due time is not known. With Change.AtOnce it
	// is delivered at once; Change.Edit may set a Delay-Until.
	ErrNoTime = stays("the request was not understood, so nobody knows when it is due")
	// ErrPastExpiry is returned when Delay-Expires has passed. Change.DropExpiry drops it.
	ErrPastExpiry = stays("its Delay-Expires has passed")
	// ErrEdit is returned when the letter's headers cannot be changed as Change.Edit asks: the headers are reserved or too
	// many, or their values contradict the letter's.
	ErrEdit = stays("its headers cannot be changed like this")
	// ErrTooLarge is returned when the lanes take no message of this size.
	ErrTooLarge = stays("it is larger than the lanes take")
)

// A stay is a reason for ErrStays.
type stay struct{ why string }

func stays(why string) error { return &stay{why} }

func (s *stay) Error() string        { return s.why }
func (s *stay) Is(target error) bool { return target == ErrStays }
