Boutsidej
locationweights.binp