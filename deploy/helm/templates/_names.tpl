{{/* Labels of everything; with a service's name those of its pods. */}}
{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The environment: the chart's own, then what everybody gets, then what is this one's. The later one counts. */}}
{{- define "environment" -}}
{{- $own := dict "NODE_ENV" "production" "OPERATIONS_HOST" "0.0.0.0" "OPERATIONS_PORT" "9100" -}}
{{- if .port }}{{ $own = merge $own (dict "HTTP_HOST" "0.0.0.0" "HTTP_PORT" (toString .port)) }}{{ end -}}
{{- $plain := mergeOverwrite $own (deepCopy .root.Values.settings) (deepCopy (.settings | default dict)) -}}
{{- $secret := mergeOverwrite (deepCopy .root.Values.secrets) (deepCopy (.secrets | default dict)) -}}
{{- range $name, $value := $plain }}
{{- if not (hasKey $secret $name) }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- range $name, $from := $secret }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $from.name }}, key: {{ $from.key }} }
{{- end }}
{{- end }}

{{- define "podSecurity" -}}
runAsNonRoot: true
# The user `node` of the image.
runAsUser: 1000
runAsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
