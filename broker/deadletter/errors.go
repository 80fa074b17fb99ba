package deadletter

import "errors"

var (
	// ErrNoStream is returned when there is no stream of dead letters, or no lane to resend by. Provision them.
	ErrNoStream = errors.New("the stream is not there")
	// ErrAbsent is returned by Remove for a letter that is gone already.
	ErrAbsent = errors.New("the letter is gone")

	// ErrStays is wrapped by what is returned for a letter that cannot be resent as asked. It stays as it is.
	ErrStays = errors.New("the letter stays")
	// ErrUnreadable is returned when the headers of a letter are not what a broker of this format writes.
	ErrUnreadable = stays("its headers are not what a broker of this version writes")
	// ErrUnproven is returned when no seal proves that a broker has written the letter, or the message in it: whoever can
	// have something put below the broker's subjects may have. Change.Unsealed has it delivered all the same.
	ErrUnproven = stays("nobody has proven that a broker wrote it")
	// ErrNoTarget is returned when a letter has no target. Change.Target gives it one.
	ErrNoTarget = stays("it has no target")
	// ErrForbidden is returned when the target does not pass the policy, now. Change.Target gives the letter another.
	ErrForbidden = stays("its target may not be delivered to")
	// ErrNoTime is returned when a request was never understood, so that nobody knows when it is due. Change.AtOnce has it
	// delivered all the same.
	ErrNoTime = stays("the request was not understood, so nobody knows when it is due")
	// ErrPastExpiry is returned when Delay-Expires has passed. Change.DropExpiry drops it.
	ErrPastExpiry = stays("its Delay-Expires has passed")
	// ErrTooLarge is returned when the lanes take no message of this size.
	ErrTooLarge = stays("it is larger than the lanes take")
)

// A stay is a reason for ErrStays.
type stay struct{ why string }

func stays(why string) error { return &stay{why} }

func (s *stay) Error() string        { return s.why }
func (s *stay) Is(target error) bool { return target == ErrStays }
