//go:build linux

package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"delaybroker/test/natstest"
)

// timeout is the maximum time of most steps of a run.
const timeout = time.Minute

// process is a server or a broker that can be started again after its end.
type process struct {
	name     string
	command  []string
	env      []string
	log      string // a file; each run of the process appends to it
	stopCode int    // the expected exit code of a graceful stop

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // the error of the end; valid after done is closed
}

func (p *process) start() error {
	out, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() // the process has its own descriptor
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Dir = filepath.Dir(p.log)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // kills the process if this test is killed
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		defer close(done)
		p.err = cmd.Wait()
	}()
	return nil
}

// running reports whether the process was started and has not ended.
func (p *process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process immediately, and returns the proof that the process has ended.
func (p *process) kill() (string, error) {
	if !p.running() {
		return "", fmt.Errorf("%s was not running", p.name)
	}
	pid := p.cmd.Process.Pid
	if err := p.cmd.Process.Kill(); err != nil {
		return "", fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return "", fmt.Errorf("%s ended by itself: %v", p.name, p.err)
	}
	return fmt.Sprintf("%s, process %d, killed", p.name, pid), nil
}

// terminate stops the process gracefully, and returns the proof that the process has ended.
func (p *process) terminate() (string, error) { return p.stop(syscall.SIGTERM) }

// stop stops the process gracefully by a signal, and returns the proof that the process has ended.
func (p *process) stop(signal syscall.Signal) (string, error) {
	if !p.running() {
		return "", fmt.Errorf("%s was not running", p.name)
	}
	pid := p.cmd.Process.Pid
	if err := p.cmd.Process.Signal(signal); err != nil {
		return "", fmt.Errorf("send the signal %q to %s: %w", signal, p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(timeout):
		return "", fmt.Errorf("%s did not stop within %s", p.name, timeout)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != p.stopCode {
		return "", fmt.Errorf("%s ended with code %d: %v; its log ends with\n%s", p.name, code, p.err, p.logTail())
	}
	return fmt.Sprintf("%s, process %d, stopped", p.name, pid), nil
}

func (p *process) logTail() []byte {
	const maxBytes = 2000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-maxBytes):]
}

// pause suspends the process, and returns the proof that the process is suspended.
func (p *process) pause() (string, error) {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return "", fmt.Errorf("pause %s: %w", p.name, err)
	}
	pid := p.cmd.Process.Pid
	err := await(timeout, func() error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && !bytes.Contains(status, []byte("State:\tT")) {
			err = errors.New("not stopped yet")
		}
		return err
	})
	return fmt.Sprintf("%s, process %d, in state T", p.name, pid), err
}

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// end makes sure that the process does not run.
func (p *process) end() {
	if p.running() {
		_ = p.cmd.Process.Kill() // ignored: the process may have just ended
		<-p.done
	}
}

// await calls f until f returns nil. After maxTime, await returns the last error of f.
func await(maxTime time.Duration, f func() error) error {
	deadline := time.Now().Add(maxTime)
	for {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

type programs struct {
	server string
	broker string
}

// buildPrograms builds the binaries into dir. The server has the version in go.mod. The broker is from this tree,
// unless the path of another binary is given.
func buildPrograms(dir, broker string) (programs, error) {
	p := programs{server: filepath.Join(dir, "nats-server"), broker: broker}
	if err := natstest.Build(p.server, "github.com/nats-io/nats-server/v2"); err != nil {
		return p, err
	}
	if p.broker == "" {
		p.broker = filepath.Join(dir, "delaybroker")
		return p, natstest.Build(p.broker, "delaybroker/cmd/delaybroker")
	}
	var err error
	p.broker, err = filepath.Abs(p.broker) // the process runs in another directory
	return p, err
}
