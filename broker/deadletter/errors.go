package deadletter

import "errors"

var (
	// errNoStream is returned if the stream of dead letters, or of the lane for resent messages, is missing. Run
	// delaybroker provision.
	errNoStream = errors.New("the stream does not exist")
	// ErrAbsent is returned for a letter that the stream no longer has.
	ErrAbsent = errors.New("the letter is gone")

	// ErrNotResendable matches every error about a letter that cannot be resent with the given change. The letter is
	// unchanged.
	ErrNotResendable = errors.New("the letter cannot be resent")
	// ErrUnreadable is returned if the headers of a letter cannot come from a broker of this version.
	ErrUnreadable = notResendable("no broker of this version can have written its headers")
	// ErrUnproven is returned if no seal proves that a broker wrote the letter and the message in it. A client may have
	// forged them. With Resend.Unsealed, the message is resent without this proof.
	ErrUnproven = notResendable("no seal proves that a broker wrote it")
	// ErrMarker is returned for a letter for which Letter.isMarker returns true.
	ErrMarker = notResendable("it is the marker of a named timer, not a message")
	// ErrNoTarget is returned if a letter has no target. Set Resend.Target.
	ErrNoTarget = notResendable("it has no target")
	// ErrForbidden is returned if the current policy does not allow the target. Set another Resend.Target.
	ErrForbidden = notResendable("its target is not allowed")
	// ErrNoTime is returned if the due time is unknown because the request was invalid. Set Resend.DeliverNow, or a
	// Delay-Until in Resend.Edit.
	ErrNoTime = notResendable("the request was invalid, so its due time is unknown")
	// ErrExpired is returned if Delay-Expires has passed. Set Resend.DropExpiry.
	ErrExpired = notResendable("its Delay-Expires has passed")
	// ErrEdit is returned if Resend.Edit is not possible, for example because a header is reserved or a value is invalid.
	ErrEdit = notResendable("this change of its headers is not possible")
	// ErrTooLarge is returned if the lane for resent messages does not accept a message of this size.
	ErrTooLarge = notResendable("it is larger than the lanes allow")
)

// A resendError is an error that ErrNotResendable matches.
type resendError struct{ reason string }

func notResendable(reason string) error { return &resendError{reason} }

func (e *resendError) Error() string        { return e.reason }
func (e *resendError) Is(target error) bool { return target == ErrNotResendable }
