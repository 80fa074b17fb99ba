{{- define "delaybroker.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "delaybroker.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* fullname is the name of all objects. A chart in which this one is a part may have objects with the release's name. */}}
{{- define "delaybroker.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* text is a value as the broker reads it: a values file's 5000000 is a float, and its off is false. */}}
{{- define "delaybroker.text" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}
{{- else }}{{ . }}
{{- end }}
{{- end }}

{{- /* taken has the settings that the chart sets, each with the value that changes it. */}}
{{- define "delaybroker.taken" -}}
NATS_URL: nats.url
NATS_CREDS: nats.credsSecret
NATS_CONTEXT: nats.contextsSecret
DELAY_READ_CONTEXT: nats.contextsSecret
DELAY_WRITE_CONTEXT: nats.contextsSecret
DELAY_DELIVER_CONTEXT: nats.contextsSecret
DELAY_HTTP_CONTEXT: nats.contextsSecret
NATS_CA: nats.tlsSecret
NATS_CERT: nats.tlsSecret
NATS_KEY: nats.tlsSecret
DELAY_LEVELS: levels
DELAY_JOURNAL: journal
DELAY_SECRET: secrets.existingSecret
DELAY_HTTP_TOKEN: secrets.existingSecret
DELAY_HTTP_ACTIONS: page.actions
DELAY_HTTP_ADDR: networkPolicy, since it is always :8422
GOMEMLIMIT: resources.memoryLimitMiB
{{- if .Values.page.ingress.enabled }}
DELAY_HTTP_HOSTS: page.ingress.host
{{- end }}
{{- if .Values.provision.job }}
DELAY_PROVISION: provision.job
{{- end }}
{{- if eq .Values.kind "StatefulSet" }}
DELAY_INSTANCE: kind
{{- end }}
{{- end }}

{{- /* env has the settings that the brokers share with the job that creates their streams. */}}
{{- define "delaybroker.env" -}}
- {name: NATS_URL, value: {{ .Values.nats.url | quote }}}
- {name: DELAY_LEVELS, value: {{ include "delaybroker.text" .Values.levels | quote }}}
- {name: DELAY_JOURNAL, value: {{ include "delaybroker.text" .Values.journal | quote }}}
{{- if .Values.nats.tlsSecret }}
- {name: NATS_CA, value: /etc/nats-tls/ca.crt}
{{- if .Values.nats.mutualTLS }}
- {name: NATS_CERT, value: /etc/nats-tls/tls.crt}
- {name: NATS_KEY, value: /etc/nats-tls/tls.key}
{{- end }}
{{- end }}
{{- if and .Values.secrets.existingSecret .Values.secrets.seal }}
- name: DELAY_SECRET
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.existingSecret }}, key: seal}}
{{- end }}
{{- $taken := include "delaybroker.taken" . | fromYaml }}
{{- range $name, $value := .Values.settings }}
{{- with get $taken $name }}
{{- fail (printf "settings.%s: the chart sets it: change the value %s" $name .) }}
{{- end }}
- {name: {{ $name }}, value: {{ include "delaybroker.text" $value | quote }}}
{{- end }}
{{- end }}

{{- define "delaybroker.mounts" -}}
- {name: nats, mountPath: /etc/nats, readOnly: true}
{{- if .Values.nats.tlsSecret }}
- {name: nats-tls, mountPath: /etc/nats-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "delaybroker.volumes" -}}
- name: nats
  secret: {secretName: {{ .Values.nats.contextsSecret | default .Values.nats.credsSecret }}, defaultMode: 0440}
{{- if .Values.nats.tlsSecret }}
- name: nats-tls
  secret: {secretName: {{ .Values.nats.tlsSecret }}, defaultMode: 0440}
{{- end }}
{{- end }}
