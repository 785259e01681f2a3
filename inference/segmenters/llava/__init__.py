"""The parts of the LISA family (LISA, SESAME, READ): a LLaVA that says [SEG], and a SAM that draws what it meant."""
