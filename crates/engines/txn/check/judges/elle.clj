; Judges a history with Elle: clojure.main elle.clj (list-append|rw-register) HISTORY.edn
;
; HISTORY.edn comes from `dyno txn check export --format edn`. Prints Elle's verdict for strict
; serializability as one map. Exits 0 when the history is valid, 4 when it is not, 3 when Elle cannot
; tell, and 1, as Java does, when there is no verdict because something could not be loaded or read.
(require '[clojure.edn :as edn]
         '[clojure.java.io :as io]
         '[elle.list-append :as list-append]
         '[elle.rw-register :as rw-register]
         '[jepsen.history :as history])

(let [[model path] *command-line-args*
      check (case model
              "list-append" list-append/check
              "rw-register" rw-register/check)
      lines (with-open [from (io/reader path)]
              (mapv edn/read-string (line-seq from)))
      ; Registers are read before they are replaced, and real time orders their versions too. Elle
      ; infers the order of versions only when it is told that both may be used.
      options {:consistency-models [:strict-serializable]
               :linearizable-keys? true
               :wfr-keys? true
               :sequential-keys? true}
      verdict (check options (history/history lines))]
  (prn {:judge "elle" :model model :history path :operations (count lines)
        :valid? (:valid? verdict) :anomaly-types (:anomaly-types verdict)
        :not (:not verdict) :anomalies (:anomalies verdict)})
  (shutdown-agents)
  (System/exit (case (:valid? verdict) true 0 false 4 3)))
