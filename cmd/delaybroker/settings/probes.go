package settings

import "net"

// ProbeURL returns the URL at which a client on the same host probes a broker with these settings. It is empty if HTTP
// is off, or if the system chooses the port.
func (c Config) ProbeURL() string {
	if _, port, err := net.SplitHostPort(c.HTTPAddr); err != nil || port == "0" {
		return ""
	}
	return probeURL(c.HTTPAddr)
}

// ReadProbeURL returns the URL for probes. It reads only DELAY_HTTP_ADDR, so other settings may be invalid.
func ReadProbeURL() (url string, err error) {
	s := readSettings()
	var p problems
	if s.HTTPAddr == wordOff {
		p.refuse("DELAY_HTTP_ADDR", s.HTTPAddr, "HTTP is off, so there are no probes")
	} else {
		p.address("DELAY_HTTP_ADDR", s.HTTPAddr, "127.0.0.1:8422 or :8422")
	}
	return probeURL(s.HTTPAddr), p.err()
}

// PageURL returns the URL at which a browser on the same host opens the page of a broker with this listen address. If
// listen is "off", PageURL returns "off".
func PageURL(listen string) string {
	if listen == wordOff {
		return listen
	}
	return probeURL(listen) + "/"
}

func probeURL(listen string) string { return "http://" + dialAddress(listen) }

// dialAddress returns the address at which clients on this host reach a listen address. For ":8422" and "0.0.0.0:8422"
// it returns "127.0.0.1:8422".
func dialAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
