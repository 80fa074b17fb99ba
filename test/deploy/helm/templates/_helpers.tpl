{{- define "delaybroker.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "delaybroker.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "delaybroker.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "delaybroker.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* env has the settings that the brokers share with the job that creates their streams. */}}
{{- define "delaybroker.env" -}}
- {name: NATS_URL, value: {{ .Values.nats.url | quote }}}
- {name: DELAY_LEVELS, value: {{ .Values.levels | quote }}}
- {name: DELAY_JOURNAL, value: {{ .Values.journal | quote }}}
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
{{- range $name, $value := .Values.settings }}
{{- if has $name (list "DELAY_SECRET" "DELAY_HTTP_TOKEN") }}
{{- fail (printf "settings.%s would be readable in the manifest: put it into a secret, and name that in the values" $name) }}
{{- end }}
- {name: {{ $name }}, value: {{ $value | quote }}}
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
